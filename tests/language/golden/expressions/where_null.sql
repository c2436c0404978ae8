SELECT dest FROM flights WHERE delay > NULL
