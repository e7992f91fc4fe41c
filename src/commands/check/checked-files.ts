/** Checks the files that settings name: contents and the expiry of certificates. Loading has refused unusable files already. */
import { X509Certificate } from 'node:crypto';
import { stat } from 'node:fs/promises';
import type { AuthConfig, Config, UpstreamConfig } from '../../config/config.ts';
import { splitPemCertificates } from '../../config/load/named-files.ts';
import { describeEnds, formatSettingName } from '../../config/load/problems.ts';
import { findAssertionSigning } from '../../token/client/client-authentication.ts';
import { LARGEST_PEM_BYTES, readTextFile, type SecretSource } from '../../token/client/secret-file.ts';
import { formatDays, DAY_MS, EXPIRY_WARNING_DAYS } from './evaluate/evaluate-tls.ts';
import { createSettingNamer, type NameSetting } from './step-runner.ts';
import { StepRunner, type CheckStep, type CheckContext, type CheckFinding } from './step-runner.ts';

interface CheckedFile {
  readonly setting: string;
  readonly path: string;
  /** `certificate`: our own, the leaf first. `authorities`: trusted certificates. */
  readonly kind: 'secret' | 'key' | 'certificate' | 'authorities';
}

export async function checkFiles(config: Config, context: CheckContext): Promise<readonly CheckStep[]> {
  const groups = await Promise.all(
    listFiles(config).map(async (file) => {
      const runner = new StepRunner(file.setting.replace(/ \(.*$/, ''), context);
      await runner.run('file', () => inspectFile(file, context.clock.wallNow()));
      return runner.steps;
    }),
  );
  return groups.flat();
}

function listFiles(config: Config): readonly CheckedFile[] {
  const { egress, fleet, listen } = config;
  // `upstream.caFile` is also the default of `auth.caFile`.
  const upstreamAuthorities = new Set(config.routes.map(({ upstream }) => upstream.caFile));
  const files = [
    ...config.credentials
      .flatMap(({ name, auth }) => listAuthFiles(auth, createSettingNamer('credential', name)))
      .filter(({ kind, path }) => kind !== 'authorities' || !upstreamAuthorities.has(path)),
    ...config.routes.flatMap(({ name, upstream }) => listUpstreamFiles(upstream, createSettingNamer('route', name))),
    ...listFile('authorities', formatSettingName('egress.caFile'), egress.proxy && egress.caFile),
    ...listSecretFile(formatSettingName('fleet.redisUrlFile'), fleet?.redisUrl),
    ...listFile('authorities', formatSettingName('fleet.caFile'), fleet?.caFile),
    ...listSecretFile(formatSettingName('listen.requiredHeader.valueFile'), listen.requiredHeader?.value),
  ];
  return [...new Map(files.toReversed().map((file) => [file.path, file])).values()].toReversed();
}

function listAuthFiles(auth: AuthConfig, names: NameSetting): readonly CheckedFile[] {
  const { method, clientCertificate } = auth;
  const { keyFile, certificateFile } = findAssertionSigning(auth) ?? {};
  return [
    ...listSecretFile(names('auth.clientIdFile'), auth.clientId),
    ...listSecretFile(names('auth.clientSecretFile'), 'secret' in method ? method.secret : undefined),
    ...listFile('key', names('auth.privateKeyFile'), keyFile),
    ...listFile('certificate', names('auth.certificateFile'), certificateFile),
    ...listFile('certificate', names('auth.tlsCertificateFile'), clientCertificate?.certificateFile),
    ...listFile('key', names('auth.tlsKeyFile'), clientCertificate?.keyFile),
    ...listFile('authorities', names('auth.caFile'), auth.caFile),
    ...Object.values(auth.extraParameters).flatMap((one) => listSecretFile(names('auth.extraParameters'), one)),
    ...Object.values(auth.extraHeaders).flatMap((one) => listSecretFile(names('auth.extraHeaders'), one)),
  ];
}

function listUpstreamFiles(
  { caFile, clientCertificate, headers, query }: UpstreamConfig,
  names: NameSetting,
): CheckedFile[] {
  return [
    ...listFile('certificate', names('upstream.tlsCertificateFile'), clientCertificate?.certificateFile),
    ...listFile('key', names('upstream.tlsKeyFile'), clientCertificate?.keyFile),
    ...listFile('authorities', names('upstream.caFile'), caFile),
    ...Object.values(headers).flatMap((one) => listSecretFile(names('upstream.headers'), one)),
    ...Object.values(query).flatMap((one) => listSecretFile(names('upstream.query'), one)),
  ];
}

function listSecretFile(setting: string, source: SecretSource | undefined): CheckedFile[] {
  return listFile('secret', setting, source?.kind === 'file' ? source.path : undefined);
}

function listFile(kind: CheckedFile['kind'], setting: string, path: string | undefined): CheckedFile[] {
  return path === undefined ? [] : [{ setting, path, kind }];
}

async function inspectFile({ setting, path, kind }: CheckedFile, wallNow: number): Promise<CheckFinding> {
  const reading = await readTextFile(setting, path, LARGEST_PEM_BYTES);
  if (reading.kind === 'unreadable')
    return { outcome: 'fail', detail: reading.detail, advice: 'mount or write that file' };
  const shown = `${path}, mode ${((await stat(path)).mode & 0o777).toString(8).padStart(4, '0')}`;
  if (kind === 'secret') return evaluateSecret(reading.value, shown);
  return kind === 'key' ? { outcome: 'ok', detail: shown } : evaluateCertificates(reading.value, kind, shown, wallNow);
}

function evaluateSecret(text: string, shown: string): CheckFinding {
  const value = text.replace(/\r?\n$/, '');
  const lineEnd = value === text ? '' : ', the trailing line end is dropped';
  if (value === '') return { outcome: 'fail', detail: `${shown}, is empty`, advice: 'write the value into it' };
  const ends = describeEnds(value);
  if (ends === undefined) return { outcome: 'ok', detail: shown + lineEnd };
  const detail = `${shown}, ${ends}, and all of it is the value`;
  return { outcome: 'warn', detail, advice: 'write it again without them, unless they belong to the value' };
}

function evaluateCertificates(
  pem: string,
  kind: 'certificate' | 'authorities',
  shown: string,
  wallNow: number,
): CheckFinding {
  // A system bundle usually contains expired certificates: for authorities the last to expire counts, for our own the leaf.
  const ends = splitPemCertificates(pem).map((block) => Date.parse(new X509Certificate(block).validTo));
  const end = kind === 'authorities' ? Math.max(...ends) : (ends[0] ?? NaN);
  const days = Math.floor((end - wallNow) / DAY_MS);
  const subject = kind !== 'authorities' || ends.length === 1 ? 'certificate' : `${ends.length} certificates, the last`;
  if (!Number.isFinite(days)) return { outcome: 'ok', detail: shown };
  const detail = `${shown}, ${subject} ${days < 0 ? 'expired' : `valid for ${formatDays(days)}`} (${new Date(end).toISOString().slice(0, 10)})`;
  const advice = kind === 'authorities' ? 'get the current certificates of that authority' : 'renew the certificate';
  if (days < 0) return { outcome: 'fail', detail, advice };
  return days < EXPIRY_WARNING_DAYS ? { outcome: 'warn', detail, advice } : { outcome: 'ok', detail };
}
