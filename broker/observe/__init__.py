"""What the node tells of itself: entities with their figures, status, metrics, the last hour."""
