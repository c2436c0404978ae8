CREATE STREAM devices (
    id BIGINT NOT NULL,
    fw STRING PATH '$.meta.fw' NOT NULL,
    first_tag STRING PATH '$.tags[0]',
    odd DOUBLE NOT NULL PATH '$."a b"[''c.d'']["e"][10]',
    at TIMESTAMP PATH '$.meta.at'
) WITH (timestamp = 'at')
