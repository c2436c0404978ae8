"""What the broker's processes run on: signs of life, locks, producers, measured costs, users' functions."""
