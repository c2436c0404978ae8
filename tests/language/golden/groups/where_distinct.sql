SELECT dest FROM flights WHERE dest IS NOT DISTINCT FROM carrier
