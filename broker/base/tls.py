"""The certificate and the key of HTTP, tried before anything is started with them."""

from __future__ import annotations

import ssl
from pathlib import Path


def check_pair(certificate: Path | None, key: Path | None) -> None:
    """Raise ValueError unless both are given or none, and TLS takes them: PEM files, the key that of the
    certificate and not encrypted, since a broker that starts again by itself asks nobody for its password.
    """
    if certificate is None and key is None:
        return
    if certificate is None or key is None:
        raise ValueError("http_tls_certificate and http_tls_key come together")

    def no_password() -> str:
        raise ValueError(
            f"http_tls_key: {key} is encrypted; write one without a password, for its owner alone"
        )

    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key, no_password)
    except OSError as refused:
        reason = refused.reason if isinstance(refused, ssl.SSLError) and refused.reason else refused.strerror
        raise ValueError(
            f"TLS cannot use http_tls_certificate={certificate} with http_tls_key={key} "
            f"({reason}): both are PEM files, and the key is that of the first certificate"
        ) from None
