/**
 * Checks at start that the files named by settings exist and can be used. Nothing that is read here is kept: credentials are read
 * again at each use.
 */
import { isUtf8 } from 'node:buffer';
import { X509Certificate } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { describeFileError } from '../../platform/file-errors.ts';
import { findClientCertificateFault } from '../../platform/tls.ts';
import { findSigningCertificateFault } from '../../token/client/signed-assertion.ts';
import { parseSigningKey } from '../../token/client/signing-key.ts';
import { dropLineEnd, headerValueFault, secretFault } from '../schema/formats/credentials.ts';
import { createSettingProblem } from './problems.ts';
import type { SettingProblem } from './problems.ts';
import type { SecretMap } from '../schema/formats/formats.ts';
import { redisUrlFault } from '../schema/formats/redis-url.ts';
import { isColonForbidden, colonFault, signsAssertions } from '../rules/rules-auth.ts';
import type { SettingKey, Settings } from '../schema/schema.ts';

interface NamedFile {
  readonly key: SettingKey;
  readonly path: (settings: Settings) => string | null;
  /** The fault of the contents, without quoting them; undefined when there is none. */
  readonly fault: (contents: string, settings: Settings) => string | undefined;
}

const NAMED_FILES: readonly NamedFile[] = [
  { key: 'upstream.caFile', path: ({ upstream }) => upstream.caFile, fault: certificateFault },
  { key: 'auth.clientIdFile', path: ({ auth }) => auth.clientIdFile, fault: withoutLineEnd(clientIdFault) },
  { key: 'auth.clientSecretFile', path: ({ auth }) => auth.clientSecretFile, fault: withoutLineEnd(secretFault) },
  { key: 'auth.privateKeyFile', path: ({ auth }) => auth.privateKeyFile, fault: signingKeyFault },
  { key: 'auth.certificateFile', path: ({ auth }) => auth.certificateFile, fault: signingCertificateFault },
  { key: 'auth.tlsCertificateFile', path: ({ auth }) => auth.tlsCertificateFile, fault: certificateFault },
  { key: 'auth.tlsKeyFile', path: ({ auth }) => auth.tlsKeyFile, fault: tlsKeyFault('auth') },
  { key: 'auth.caFile', path: ({ auth }) => auth.caFile, fault: certificateFault },
  { key: 'upstream.tlsCertificateFile', path: ({ upstream }) => upstream.tlsCertificateFile, fault: certificateFault },
  { key: 'upstream.tlsKeyFile', path: ({ upstream }) => upstream.tlsKeyFile, fault: tlsKeyFault('upstream') },
  { key: 'egress.caFile', path: ({ egress }) => egress.caFile, fault: certificateFault },
  { key: 'fleet.redisUrlFile', path: ({ fleet }) => fleet.redisUrlFile, fault: withoutLineEnd(redisUrlContentsFault) },
  { key: 'fleet.caFile', path: ({ fleet }) => fleet.caFile, fault: certificateFault },
  {
    key: 'listen.requiredHeader.valueFile',
    path: ({ listen }) => listen.requiredHeader.valueFile,
    fault: withoutLineEnd(headerValueFault),
  },
];

/** Credentials and certificate bundles are smaller; a wrong path may lead to a large file. */
const MAX_FILE_BYTES = 1024 * 1024;

/**
 * One problem per file that cannot be used.
 * @param isIncluded which settings to check. Default: all
 */
export function findFileProblems(
  settings: Settings,
  isIncluded: (key: SettingKey) => boolean = () => true,
): SettingProblem[] {
  return [...NAMED_FILES, ...listFilesInMaps(settings)].flatMap(({ key, path: pathOf, fault }) => {
    const path = isIncluded(key) ? pathOf(settings) : null;
    if (path === null) return [];
    const found = checkFile(path, (contents) => fault(contents, settings));
    return found === undefined ? [] : [createSettingProblem(key, `the file ${JSON.stringify(path)} ${found}`)];
  });
}

/** Of settings whose values are texts or files. */
function listFilesInMaps({ auth, upstream }: Settings): NamedFile[] {
  const list = (key: SettingKey, map: SecretMap, fault: NamedFile['fault']): NamedFile[] =>
    Object.values(map).flatMap((one) =>
      typeof one === 'string' ? [] : [{ key, path: () => one.file, fault: withoutLineEnd(fault) }],
    );
  return [
    ...list('auth.extraParameters', auth.extraParameters, secretFault),
    ...list('auth.extraHeaders', auth.extraHeaders, headerValueFault),
    ...list('upstream.headers', upstream.headers, headerValueFault),
  ];
}

function checkFile(path: string, fault: (contents: string) => string | undefined): string | undefined {
  try {
    // The files are read repeatedly: a pipe can be read only once, and a device may never end.
    if (!statSync(path).isFile()) return 'is not a regular file';
    const bytes = readFileSync(path);
    if (bytes.length > MAX_FILE_BYTES) return `is larger than ${String(MAX_FILE_BYTES)} bytes`;
    return isUtf8(bytes) ? fault(bytes.toString('utf8')) : 'is not UTF-8 text';
  } catch (error) {
    return describeFileError(error);
  }
}

/** As the value is read later. */
function withoutLineEnd(fault: NamedFile['fault']): NamedFile['fault'] {
  return (contents, settings) => fault(dropLineEnd(contents.replace(/^\uFEFF/, '')), settings);
}

function clientIdFault(contents: string, { auth }: Settings): string | undefined {
  return secretFault(contents) ?? (isColonForbidden(auth) ? colonFault(contents) : undefined);
}

/** A file that the method does not use is reported by a rule. */
function signingKeyFault(contents: string, { auth }: Settings): string | undefined {
  if (!signsAssertions(auth)) return undefined;
  const reading = parseSigningKey(contents, auth.signingAlgorithm ?? undefined);
  return reading.kind === 'read' ? undefined : reading.fault;
}

function signingCertificateFault(contents: string, { auth }: Settings): string | undefined {
  const key = parseSigningKey(readOrUndefined(auth.privateKeyFile) ?? '', undefined);
  // An unreadable key is reported separately.
  if (key.kind === 'unusable') return certificateFault(contents);
  return certificateFault(contents) ?? findSigningCertificateFault(contents, key.signingKey.key);
}

function tlsKeyFault(owner: 'auth' | 'upstream'): NamedFile['fault'] {
  return (key, settings) => {
    const certificate = readOrUndefined(settings[owner].tlsCertificateFile);
    // An unreadable certificate is reported separately.
    if (certificate === undefined || certificateFault(certificate) !== undefined) return undefined;
    const found = findClientCertificateFault({ certificate, key });
    return found === undefined ? undefined : `cannot be used: ${found}`;
  };
}

function readOrUndefined(path: string | null): string | undefined {
  try {
    return path === null ? undefined : readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}

function redisUrlContentsFault(contents: string): string | undefined {
  const fault = redisUrlFault(contents);
  return fault && `holds no Redis URL: ${fault}`;
}

/** The PEM certificates in a text, in order. */
export function splitPemCertificates(text: string): readonly string[] {
  return text.match(/-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g) ?? [];
}

function certificateFault(contents: string): string | undefined {
  const blocks = splitPemCertificates(contents);
  if (blocks.length === 0) return 'holds no PEM certificate (-----BEGIN CERTIFICATE-----)';
  const broken = blocks.findIndex((block) => !isCertificate(block));
  return broken < 0 ? undefined : `holds a certificate that cannot be read, number ${String(broken + 1)}`;
}

function isCertificate(pem: string): boolean {
  try {
    return new X509Certificate(pem).raw.length > 0;
  } catch {
    return false;
  }
}
