SELECT dest FROM flights WHERE dest ~* carrier
