"""Schedules of irregular collectives: an order of the messages of a pattern."""
