"""What crosses the engine's border: types, schemas, batches, sources, steps, positions, answers."""
