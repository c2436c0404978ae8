((SELECT dest FROM flights)) EMIT CHANGES
