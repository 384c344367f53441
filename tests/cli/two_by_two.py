"""The least cluster on which a tree has messages both within hosts and between them."""

CLUSTER = """\
name: two-by-two
defaults: {bandwidth: 1Gbit, latency: 50us}
switches:
  s0: {hosts: "n[0-1]"}
hosts:
  n0: {slots: 2}
  n1: {slots: 2}
"""
