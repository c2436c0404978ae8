SELECT dest FROM flights EMIT CHANGES INTO tureen.late
