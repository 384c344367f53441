"""What is wrong with a cluster before it is measured: visits its hosts, judges what they say."""
