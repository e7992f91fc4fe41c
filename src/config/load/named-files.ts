/**
 * Checks at start that the files named by settings exist and can be used. Nothing that is read here is kept: credentials are read
 * again at each use.
 */
import { isUtf8 } from 'node:buffer';
import { X509Certificate } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { describeFileError } from '../../platform/file-errors.ts';
import { findClientCertificateFault } from '../../platform/tls.ts';
import { tryRead } from '../../platform/try-read.ts';
import { findSigningCertificateFault } from '../../token/client/signed-assertion.ts';
import { parseSigningKey } from '../../token/client/signing-key.ts';
import { isJsonObject } from '../../token/endpoint/json-object.ts';
import { headerValueFault, secretFault } from '../schema/formats/credentials.ts';
import { createSettingProblem, type SettingProblem } from './problems.ts';
import type { SecretMap, SettingValue } from '../schema/formats/formats.ts';
import { redisUrlFault } from '../schema/formats/redis-url.ts';
import { forbiddenColonFault, signsAssertions } from '../rules/rules-auth.ts';
import { valueOfSetting, type SettingKey, type Settings } from '../schema/schema.ts';

/** The fault of the contents, without quoting them; undefined when there is none. */
type FindFault = (contents: string, settings: Settings) => string | undefined;

/** Settings that name a file, or several in a map. */
const NAMED_FILES: readonly (readonly [key: SettingKey, fault: FindFault])[] = [
  ['upstream.caFile', certificateFault],
  ['auth.clientIdFile', withoutLineEnd((id, { auth }) => secretFault(id) ?? forbiddenColonFault(id, auth))],
  ['auth.clientSecretFile', withoutLineEnd(secretFault)],
  ['auth.privateKeyFile', signingKeyFault],
  ['auth.certificateFile', signingCertificateFault],
  ['auth.tlsCertificateFile', certificateFault],
  ['auth.tlsKeyFile', tlsKeyFault('auth')],
  ['auth.caFile', certificateFault],
  ['upstream.tlsCertificateFile', certificateFault],
  ['upstream.tlsKeyFile', tlsKeyFault('upstream')],
  ['egress.caFile', certificateFault],
  ['fleet.redisUrlFile', withoutLineEnd(redisUrlContentsFault)],
  ['fleet.caFile', certificateFault],
  ['listen.requiredHeader.valueFile', withoutLineEnd(headerValueFault)],
  ['auth.extraParameters', withoutLineEnd(secretFault)],
  ['auth.extraHeaders', withoutLineEnd(headerValueFault)],
  ['upstream.headers', withoutLineEnd(headerValueFault)],
  ['upstream.query', withoutLineEnd(secretFault)],
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
  return NAMED_FILES.flatMap(([key, fault]) =>
    (isIncluded(key) ? listPaths(valueOfSetting(settings, key)) : []).flatMap((path) => {
      const found = checkFile(path, (contents) => fault(contents, settings));
      return found === undefined ? [] : [createSettingProblem(key, `the file ${JSON.stringify(path)} ${found}`)];
    }),
  );
}

/** The value itself, or the files in a map of secrets. */
function listPaths(value: SettingValue): string[] {
  if (typeof value === 'string') return [value];
  return isJsonObject(value)
    ? Object.values(value as SecretMap).flatMap((one) => (typeof one === 'string' ? [] : one.file))
    : [];
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
function withoutLineEnd(fault: FindFault): FindFault {
  return (contents, settings) => fault(contents.replace(/^\uFEFF/, '').replace(/\r?\n$/, ''), settings);
}

/** A file that the method does not use is reported by a rule. */
function signingKeyFault(contents: string, { auth }: Settings): string | undefined {
  if (!signsAssertions(auth)) return undefined;
  const reading = parseSigningKey(contents, auth.signingAlgorithm ?? undefined);
  return typeof reading === 'string' ? reading : undefined;
}

function signingCertificateFault(contents: string, { auth }: Settings): string | undefined {
  const key = parseSigningKey(readOrUndefined(auth.privateKeyFile) ?? '', undefined);
  // An unreadable key is reported separately.
  if (typeof key === 'string') return certificateFault(contents);
  return certificateFault(contents) ?? findSigningCertificateFault(contents, key.key);
}

function tlsKeyFault(owner: 'auth' | 'upstream'): FindFault {
  return (key, settings) => {
    const certificate = readOrUndefined(settings[owner].tlsCertificateFile);
    // An unreadable certificate is reported separately.
    if (certificate === undefined || certificateFault(certificate) !== undefined) return undefined;
    const found = findClientCertificateFault({ certificate, key });
    return found === undefined ? undefined : `cannot be used: ${found}`;
  };
}

function readOrUndefined(path: string | null): string | undefined {
  return path === null ? undefined : tryRead(() => readFileSync(path, 'utf8'));
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
  const broken = blocks.findIndex((block) => tryRead(() => new X509Certificate(block)) === undefined);
  return broken < 0 ? undefined : `holds a certificate that cannot be read, number ${String(broken + 1)}`;
}
