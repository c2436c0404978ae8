"""What is done where input is more than the machine can take: scheduling, precision, allocation."""
