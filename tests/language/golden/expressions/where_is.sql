SELECT dest FROM flights WHERE dest IS NOT NULL AND cancelled IS NOT TRUE AND cancelled IS UNKNOWN
