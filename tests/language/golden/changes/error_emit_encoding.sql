SELECT dest FROM flights EMIT CHANGES WITH (encoding = 'thrift')
