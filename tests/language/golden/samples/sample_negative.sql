SELECT dest FROM flights SAMPLE(-1)
