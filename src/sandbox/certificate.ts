/**
 * The certificate of the simulated servers (RFC 5280), made at the start, since Node has no call for it. It signs itself and can sign no
 * other: a client that trusts it trusts these servers alone. DER is written in hexadecimal.
 */
import { generateKeyPairSync, hash, randomBytes, sign } from 'node:crypto';

/** In PEM. */
export interface ServerIdentity {
  readonly cert: string;
  readonly key: string;
}

const DAY_MS = 86_400_000;
const ECDSA_WITH_SHA256 = sequence('06082a8648ce3d040302');
const COMMON_NAME = sequence(der('31', sequence('0603550403', der('0c', toHex('bearer-sidecar sandbox')))));

/** @param now epoch milliseconds */
export function createServerIdentity(now: number): ServerIdentity {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const publicInfo = publicKey.export({ type: 'spki', format: 'der' }).toString('hex');
  const keyId = hash('sha1', publicInfo);
  const extensions = [
    sequence('0603551d0f', '0101ff', der('04', '03020780')), // keyUsage, critical: digitalSignature
    sequence('0603551d13', '0101ff', der('04', sequence())), // basicConstraints, critical: no authority
    sequence('0603551d25', der('04', sequence('06082b06010505070301'))), // extKeyUsage: serverAuth
    sequence('0603551d11', der('04', sequence('87047f000001', der('82', toHex('localhost'))))), // subjectAltName
    sequence('0603551d0e', der('04', der('04', keyId))), // subjectKeyIdentifier
    sequence('0603551d23', der('04', sequence(der('80', keyId)))), // authorityKeyIdentifier
  ];
  const signed = sequence(
    'a003020102', // version 3
    der('02', '01', randomBytes(15).toString('hex')), // the serial number, which is positive
    ECDSA_WITH_SHA256,
    COMMON_NAME,
    sequence(encodeTime(now - DAY_MS), encodeTime(now + 365 * DAY_MS)),
    COMMON_NAME,
    publicInfo,
    der('a3', sequence(...extensions)),
  );
  const signature = sign('sha256', Buffer.from(signed, 'hex'), privateKey).toString('hex');
  const certificate = sequence(signed, ECDSA_WITH_SHA256, der('03', '00', signature));
  const base64 = Buffer.from(certificate, 'hex')
    .toString('base64')
    .replaceAll(/.{64}(?!$)/g, '$&\n');
  return {
    cert: `-----BEGIN CERTIFICATE-----\n${base64}\n-----END CERTIFICATE-----\n`,
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }),
  };
}

/** A UTCTime, which ends with the year 2049: `YYMMDDHHMMSSZ`. */
function encodeTime(at: number): string {
  return der('17', toHex(`${new Date(at).toISOString().replaceAll(/\D/g, '').slice(2, 14)}Z`));
}

function sequence(...parts: readonly string[]): string {
  return der('30', ...parts);
}

/** Tag, length and content. A length of 128 or more follows the number of its bytes. */
function der(tag: string, ...parts: readonly string[]): string {
  const content = parts.join('');
  const length = content.length / 2;
  const prefix = length < 0x80 ? '' : length < 0x100 ? '81' : '82';
  return tag + prefix + length.toString(16).padStart(prefix === '82' ? 4 : 2, '0') + content;
}

function toHex(text: string): string {
  return Buffer.from(text).toString('hex');
}
