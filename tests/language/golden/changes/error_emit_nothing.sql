SELECT dest FROM flights EMIT
