"""The lab: a cluster emulated in network namespaces of this machine."""
