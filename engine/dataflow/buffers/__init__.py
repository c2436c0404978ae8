"""State buffers: what is kept until its exit, in structures by the order in which entries leave."""
