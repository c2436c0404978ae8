SELECT dest FROM flights SAMPLE(5, -1)
