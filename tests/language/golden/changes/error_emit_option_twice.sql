SELECT dest FROM flights EMIT CHANGES WITH (snapshot = true, snapshot = false)
