"""Certificates of one local cloud: its own authority and its certificates, created once and kept in its folder."""

import datetime
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePrivateKey
from cryptography.hazmat.primitives.asymmetric.ec import generate_private_key as new_ec_key
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key as new_rsa_key
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from hpkit_local.processes import write_private

__all__ = ["Pair", "authority", "signed"]

_LIFETIME = datetime.timedelta(days=3650)
_SLACK = datetime.timedelta(days=1)

_Key = EllipticCurvePrivateKey | RSAPrivateKey


@dataclass(frozen=True)
class Pair:
    """A certificate and its key, both PEM files."""

    certificate: Path
    key: Path


def authority(folder: Path, name: str, *, rsa: bool = False) -> Pair:
    """Return the authority with a name (also its DNS name, which Kueue's rotator checks); created if missing.

    rsa: with an RSA key in PKCS#1, the only form that Kueue's rotator reads; certificates of the authority have one
    too. Other keys use the curve P-256, which is fast to generate.
    """
    return _kept(folder, name, issuer=None, organization="", names=(name,), rsa=rsa)


def signed(
    folder: Path, name: str, *, issuer: Pair, organization: str = "", names: Sequence[str] = ("127.0.0.1", "localhost")
) -> Pair:
    """Return a certificate for server and client use, signed by the issuer; created if missing."""
    return _kept(folder, name, issuer=issuer, organization=organization, names=names)


def _kept(
    folder: Path, name: str, *, issuer: Pair | None, organization: str, names: Sequence[str], rsa: bool = False
) -> Pair:
    pair = Pair(folder / f"{name}.crt", folder / f"{name}.key")
    # The certificate is written last: where it is, the key is whole.
    if not pair.certificate.exists():
        above = None if issuer is None else _read(issuer)
        rsa = rsa if above is None else isinstance(above[1], RSAPrivateKey)
        key = new_rsa_key(public_exponent=65537, key_size=2048) if rsa else new_ec_key(SECP256R1())
        certificate = _certificate(key, name, above=above, organization=organization, names=names)
        pem = serialization.Encoding.PEM
        plain = serialization.NoEncryption()
        write_private(pair.key, key.private_bytes(pem, serialization.PrivateFormat.TraditionalOpenSSL, plain))
        write_private(pair.certificate, certificate.public_bytes(pem))
    return pair


def _certificate(
    key: _Key, name: str, *, above: tuple[x509.Name, _Key] | None, organization: str, names: Sequence[str]
) -> x509.Certificate:
    attributes = [x509.NameAttribute(NameOID.COMMON_NAME, name)]
    if organization:
        attributes.insert(0, x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization))
    subject = x509.Name(attributes)
    issuer, signer = above or (subject, key)
    now = datetime.datetime.now(datetime.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _SLACK)
        .not_valid_after(now + _LIFETIME)
        .add_extension(x509.BasicConstraints(ca=above is None, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([_san(each) for each in names]), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False)
        .add_extension(_usage(signs=above is None, encrypts=isinstance(key, RSAPrivateKey)), critical=True)
    )
    if above is not None:
        uses = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        builder = builder.add_extension(x509.ExtendedKeyUsage(uses), critical=False)
    return builder.sign(signer, hashes.SHA256())


def _read(issuer: Pair) -> tuple[x509.Name, _Key]:
    key = serialization.load_pem_private_key(issuer.key.read_bytes(), password=None)
    if not isinstance(key, _Key):
        raise TypeError(f"{issuer.key} is neither an EC nor an RSA key")
    return x509.load_pem_x509_certificate(issuer.certificate.read_bytes()).subject, key


def _san(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _usage(*, signs: bool, encrypts: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_encipherment=encrypts and not signs,
        key_cert_sign=signs,
        crl_sign=signs,
        content_commitment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
