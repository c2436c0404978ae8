SELECT dest FROM flights NATURAL SEMI JOIN flights f
