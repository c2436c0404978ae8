(SELECT dest FROM flights) x
