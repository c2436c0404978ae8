SELECT dest FROM flights WHERE delay > 3 EMIT CHANGES;
