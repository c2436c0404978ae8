SELECT dest FROM flights WHERE dest = 'JFK' OR 'LGA' = dest OR delay > 5
