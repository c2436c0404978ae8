SELECT dest FROM flights WHERE 1 / 0 = 1 AND delay > 0
