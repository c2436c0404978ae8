SELECT dest FROM flights SAMPLE(0)
