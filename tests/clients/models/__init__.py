"""Model servers on loopback that answer from a script: what a client sends them is what its model would have read."""
