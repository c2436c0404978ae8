SELECT dest FROM flights INTO late
