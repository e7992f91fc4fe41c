/**
 * The certificates of the simulated servers (RFC 5280), made at the start: an authority, and a certificate for loopback that it signs. Node
 * has no call for it; the key of the authority is not kept.
 */
import { generateKeyPairSync, hash, randomBytes, sign, type KeyObject } from 'node:crypto';

/** What a server needs, and `authority` for its clients; all in PEM. */
export interface ServerIdentity {
  readonly authority: string;
  readonly cert: string;
  readonly key: string;
}

const DAY_MS = 86_400_000;
const LIFETIME_MS = 365 * DAY_MS;

/** @param now epoch milliseconds */
export function createServerIdentity(now: number): ServerIdentity {
  const root = { name: 'bearer-sidecar sandbox authority', ...generateKeyPairSync('ec', { namedCurve: 'P-256' }) };
  const server = { name: 'bearer-sidecar sandbox', ...generateKeyPairSync('ec', { namedCurve: 'P-256' }) };
  const localhost = der(0x82, Buffer.from('localhost'));
  return {
    authority: issue(root, root, now, [
      extension('551d13', true, sequence(TRUE)), // basicConstraints: an authority
      extension('551d0f', true, der(0x03, Buffer.from('0106', 'hex'))), // keyUsage: keyCertSign, cRLSign
    ]),
    cert: issue(server, root, now, [
      extension('551d0f', true, der(0x03, Buffer.from('0780', 'hex'))), // keyUsage: digitalSignature
      extension('551d25', false, sequence(oid('2b06010505070301'))), // extKeyUsage: serverAuth
      extension('551d11', false, sequence(localhost, der(0x87, Buffer.from([127, 0, 0, 1])))), // subjectAltName
    ]),
    key: server.privateKey.export({ type: 'pkcs8', format: 'pem' }),
  };
}

interface Party {
  readonly name: string;
  readonly publicKey: KeyObject;
  readonly privateKey: KeyObject;
}

function issue(subject: Party, issuer: Party, now: number, extensions: readonly Buffer[]): string {
  const algorithm = sequence(oid('2a8648ce3d040302')); // ecdsa-with-SHA256
  // A leading byte below 0x80 makes the serial number positive.
  const serial = der(0x02, Buffer.from([1]), randomBytes(15));
  const keyIds = [
    extension('551d0e', false, der(0x04, keyId(subject))), // subjectKeyIdentifier
    extension('551d23', false, sequence(der(0x80, keyId(issuer)))), // authorityKeyIdentifier
  ];
  const signed = sequence(
    der(0xa0, der(0x02, Buffer.from([2]))), // version 3
    serial,
    algorithm,
    distinguishedName(issuer),
    sequence(time(now - DAY_MS), time(now + LIFETIME_MS)),
    distinguishedName(subject),
    exportKey(subject),
    der(0xa3, sequence(...extensions, ...keyIds)),
  );
  const signature = bitString(sign('sha256', signed, issuer.privateKey));
  const base64 = sequence(signed, algorithm, signature).toString('base64');
  return `-----BEGIN CERTIFICATE-----\n${base64.replace(/.{64}(?!$)/g, '$&\n')}\n-----END CERTIFICATE-----\n`;
}

const TRUE = der(0x01, Buffer.from([0xff]));

function extension(id: string, isCritical: boolean, value: Buffer): Buffer {
  return sequence(oid(id), ...(isCritical ? [TRUE] : []), der(0x04, value));
}

function distinguishedName({ name }: Party): Buffer {
  return sequence(der(0x31, sequence(oid('550403'), der(0x0c, Buffer.from(name))))); // commonName
}

function keyId(party: Party): Buffer {
  return hash('sha1', exportKey(party), 'buffer');
}

function exportKey({ publicKey }: Party): Buffer {
  return publicKey.export({ type: 'spki', format: 'der' });
}

/** A UTCTime, which ends with the year 2049: `YYMMDDHHMMSSZ`. */
function time(at: number): Buffer {
  return der(0x17, Buffer.from(`${new Date(at).toISOString().replaceAll(/\D/g, '').slice(2, 14)}Z`));
}

function oid(hex: string): Buffer {
  return der(0x06, Buffer.from(hex, 'hex'));
}

function bitString(bytes: Buffer): Buffer {
  return der(0x03, Buffer.from([0]), bytes);
}

function sequence(...parts: readonly Buffer[]): Buffer {
  return der(0x30, ...parts);
}

/** Tag, length and content. A length of 128 or more follows the number of its bytes. */
function der(tag: number, ...parts: readonly Buffer[]): Buffer {
  const content = Buffer.concat(parts);
  const bytes = content.length < 256 ? [content.length] : [content.length >> 8, content.length & 0xff];
  const length = content.length < 128 ? bytes : [0x80 + bytes.length, ...bytes];
  return Buffer.concat([Buffer.from([tag, ...length]), content]);
}
