SELECT dest FROM flights [Range Unbounded Preceding] S
