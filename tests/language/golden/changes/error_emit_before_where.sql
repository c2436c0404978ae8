SELECT dest FROM flights EMIT CHANGES WHERE delay > 3
