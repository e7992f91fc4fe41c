/** A customer of a partner: values for what a shape leaves open, and the files that hold them. */
import { createHash, createPublicKey, generateKeyPairSync, randomBytes, X509Certificate } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { makeCertificates } from '../../support/certificates.ts';
import type { Certificates } from '../../support/certificates.ts';
import { registerSecret } from '../../support/secrets.ts';
import { hasPlaceholder, replacePlaceholders } from './partner-settings.ts';
import type { CustomerFiles } from './partner-settings.ts';
import type { PartnerShape } from './partner-shape.ts';

export interface Customer extends CustomerFiles {
  readonly shape: PartnerShape;
  /** The name of its route and its credential, and its path at the partner server. */
  readonly name: string;
  readonly clientId: string;
  readonly clientSecret: string;
  /** What the settings keep secret: the client secret and what is in files. Grows with each file. */
  readonly secrets: readonly string[];
}

/** Keys and certificates that all customers share. */
export interface Keys extends Disposable {
  readonly folder: string;
  readonly rsaKey: KeyObject;
  readonly ecKey: KeyObject;
  /** base64url of the SHA-256 of the RSA key's certificate. */
  readonly thumbprint: string;
  readonly tls: Certificates;
}

/** Writes the files, in a folder of their own. */
export function makeKeys(): Keys {
  const folder = mkdtempSync(join(tmpdir(), 'partner-keys-'));
  const openssl = 'req -x509 -newkey rsa:2048 -nodes -keyout rsa.pem -out certificate.pem -days 2 -subj /CN=client';
  execFileSync('openssl', openssl.split(' '), { cwd: folder, stdio: 'pipe' });
  const ec = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  writeFileSync(join(folder, 'ec.pem'), ec.privateKey.export({ type: 'pkcs8', format: 'pem' }));
  const tls = makeCertificates();
  const certificate = new X509Certificate(readFileSync(join(folder, 'certificate.pem')));
  return {
    folder,
    rsaKey: createPublicKey(readFileSync(join(folder, 'rsa.pem'))),
    ecKey: ec.publicKey,
    thumbprint: createHash('sha256').update(certificate.raw).digest('base64url'),
    tls,
    [Symbol.dispose]: () => {
      tls[Symbol.dispose]();
      rmSync(folder, { recursive: true });
    },
  };
}

/** Values that no other customer has; those that the settings keep secret are registered (secrets.ts). */
export function createCustomer(shape: PartnerShape, keys: Keys): Customer {
  const name = nameOf(shape);
  const values = new Map<string, string>();
  const valueOf = (placeholder: string): string => {
    const value = values.get(placeholder) ?? createValue(placeholder, shape.call.prefix);
    values.set(placeholder, value);
    return value;
  };
  const fill = (text: string): string => replacePlaceholders(text, valueOf);
  const secrets: string[] = [];
  const keepSecret = (secret: string): string => {
    secrets.push(secret);
    registerSecret(`a secret of a customer of ${shape.name}`, secret);
    return secret;
  };
  const folder = join(keys.folder, name);
  const issued = shape.request?.needsCertificate === true ? keys.tls.issue(name) : undefined;
  const known: Readonly<Record<string, string | undefined>> = {
    'private-key.pem': join(keys.folder, shape.request?.assertion?.algorithm === 'ES256' ? 'ec.pem' : 'rsa.pem'),
    'certificate.pem': join(keys.folder, 'certificate.pem'),
    'client.pem': issued?.certificateFile,
    'client.key': issued?.keyFile,
  };
  const fileOf = (file: string, text: string): string => {
    const path = known[file] ?? join(folder, file);
    if (!hasPlaceholder(text)) return path;
    mkdirSync(folder, { recursive: true });
    // `config` shows the client id.
    const valueIn = (name: string): string => (name === 'client_id' ? valueOf(name) : keepSecret(valueOf(name)));
    const content = replacePlaceholders(text, valueIn);
    writeFileSync(path, `${content}\n`, { mode: 0o600 });
    return path;
  };
  const clientSecret = keepSecret(valueOf('client_secret'));
  return { shape, name, clientId: valueOf('client_id'), clientSecret, secrets, fill, fileOf };
}

function createValue(placeholder: string, prefix: string): string {
  const value = `${placeholder.replaceAll(/[^a-z0-9]+/gi, '-')}-${randomBytes(8).toString('hex')}`;
  if (placeholder !== 'token') return value;
  return prefix === 'Basic ' ? Buffer.from(`user:${value}`).toString('base64') : `${value}+/=`;
}

/** As routes and credentials are named: up to 32 characters. */
export function nameOf({ key }: PartnerShape): string {
  return key.slice(0, 32);
}
