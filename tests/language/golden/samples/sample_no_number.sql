SELECT dest FROM flights SAMPLE(x)
