"""What all of the broker speaks of: settings, log lines, entries, options, positions. It starts nothing."""
