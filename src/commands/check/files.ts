/**
 * The files that settings name: who may read them, whether they hold what they should, and how long the certificates in them last.
 * Loading has refused those that cannot be used at all; what it warned of is told here, with the file.
 */
import { X509Certificate } from 'node:crypto';
import { stat } from 'node:fs/promises';
import type { AuthConfig, Config, UpstreamConfig, ValueSource } from '../../config/config.ts';
import { nameOf } from '../../config/load/problems.ts';
import type { ClientCertificateFiles } from '../../platform/tls.ts';
import { LARGEST_PEM_BYTES, readTextFile } from '../../token/client/secret-file.ts';
import { countDays, DAY_MS, SOON_DAYS } from './evaluate/judge-tls.ts';
import { namesWithin } from './setting-names.ts';
import type { NameSetting } from './setting-names.ts';
import { Walk } from './walk.ts';
import type { Step, Surroundings, Verdict } from './walk.ts';

interface NamedFile {
  readonly setting: string;
  readonly path: string;
  /** `secret`: one line. `key`: a private key. `certificate`: ours, its own first. `authorities`: whom to trust. */
  readonly kind: 'secret' | 'key' | 'certificate' | 'authorities';
}

/** @param warnings of loading; those about a file end up with it, the others are given back */
export async function checkFiles(
  config: Config,
  warnings: readonly string[],
  surroundings: Surroundings,
): Promise<{ readonly steps: readonly Step[]; readonly rest: readonly string[] }> {
  const told = new Set<string>();
  const groups = await Promise.all(
    listFiles(config).map(async (file) => {
      const own = warnings.find((warning) => warning.includes(` ${JSON.stringify(file.path)} `));
      if (own !== undefined) told.add(own);
      const walk = new Walk(file.setting.replace(/ \(.*$/, ''), surroundings);
      await walk.take('file', () => inspect(file, own, surroundings.clock.wallNow()));
      return walk.steps;
    }),
  );
  return { steps: groups.flat(), rest: warnings.filter((warning) => !told.has(warning)) };
}

/** Each path once. */
function listFiles(config: Config): readonly NamedFile[] {
  const { egress, fleet, listen } = config;
  // Authorities that are set for the upstream hold for the authorization server as well.
  const upstreamAuthorities = new Set(config.routes.map(({ upstream }) => upstream.caFile));
  const files = [
    ...config.credentials
      .flatMap(({ name, auth }) => filesOfAuth(auth, namesWithin('credential', name)))
      .filter(({ kind, path }) => kind !== 'authorities' || !upstreamAuthorities.has(path)),
    ...config.routes.flatMap(({ name, upstream }) => filesOfUpstream(upstream, namesWithin('route', name))),
    ...authorities(nameOf('egress.caFile'), egress.proxy === undefined ? undefined : egress.caFile),
    ...secret(nameOf('fleet.redisUrlFile'), fleet?.redisUrl),
    ...authorities(nameOf('fleet.caFile'), fleet?.caFile),
    ...secret(nameOf('listen.requiredHeader.valueFile'), listen.requiredHeader?.value),
  ];
  return [...new Map(files.toReversed().map((file) => [file.path, file])).values()].toReversed();
}

function filesOfAuth(auth: AuthConfig, names: NameSetting): readonly NamedFile[] {
  const { method } = auth;
  const key: readonly NamedFile[] =
    method.name === 'private_key_jwt'
      ? [{ setting: names('auth.privateKeyFile'), path: method.keyFile, kind: 'key' }]
      : [];
  return [
    ...secret(names('auth.clientIdFile'), auth.clientId),
    ...secret(names('auth.clientSecretFile'), 'secret' in method ? method.secret : undefined),
    ...key,
    ...pair(names('auth.tlsCertificateFile'), names('auth.tlsKeyFile'), auth.clientCertificate),
    ...authorities(names('auth.caFile'), auth.caFile),
  ];
}

function filesOfUpstream({ caFile, clientCertificate }: UpstreamConfig, names: NameSetting): readonly NamedFile[] {
  return [
    ...pair(names('upstream.tlsCertificateFile'), names('upstream.tlsKeyFile'), clientCertificate),
    ...authorities(names('upstream.caFile'), caFile),
  ];
}

function secret(setting: string, source: ValueSource | undefined): NamedFile[] {
  return source?.kind === 'file' ? [{ setting, path: source.path, kind: 'secret' }] : [];
}

function authorities(setting: string, path: string | undefined): NamedFile[] {
  return path === undefined ? [] : [{ setting, path, kind: 'authorities' }];
}

function pair(setting: string, keySetting: string, files: ClientCertificateFiles | undefined): NamedFile[] {
  if (files === undefined) return [];
  return [
    { setting, path: files.certificateFile, kind: 'certificate' },
    { setting: keySetting, path: files.keyFile, kind: 'key' },
  ];
}

async function inspect(
  { setting, path, kind }: NamedFile,
  warning: string | undefined,
  wallNow: number,
): Promise<Verdict> {
  const reading = await readTextFile(setting, path, LARGEST_PEM_BYTES);
  if (reading.kind === 'unreadable')
    return { outcome: 'fail', detail: reading.detail, advice: 'mount or write that file' };
  const shown = `${path}, mode ${((await stat(path)).mode & 0o777).toString(8).padStart(4, '0')}`;
  const [, exposure, advice = ''] =
    /^.*? the file ".*?" (can be read by other users.*?); (.*)$/s.exec(warning ?? '') ?? [];
  if (exposure !== undefined) return { outcome: 'warn', detail: `${path} ${exposure}`, advice };
  if (kind === 'secret') return judgeSecret(reading.value, shown);
  return kind === 'key' ? { outcome: 'ok', detail: shown } : judgeCertificates(reading.value, kind, shown, wallNow);
}

function judgeSecret(text: string, shown: string): Verdict {
  const value = text.replace(/\r?\n$/, '');
  const lineEnd = value === text ? '' : ', the line end at its end is dropped';
  if (value === '') return { outcome: 'fail', detail: `${shown}, is empty`, advice: 'write the value into it' };
  if (value === value.trim()) return { outcome: 'ok', detail: shown + lineEnd };
  const detail = `${shown}, begins or ends with a blank, which counts as part of it`;
  return {
    outcome: 'warn',
    detail,
    advice: 'write it anew without the blank, if there is none in what you were given',
  };
}

function judgeCertificates(pem: string, kind: 'certificate' | 'authorities', shown: string, wallNow: number): Verdict {
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
  // A bundle of a system holds expired ones as a matter of course: of authorities the best counts, of our own the first.
  const ends = blocks.map((block) => Date.parse(new X509Certificate(block).validTo));
  const end = kind === 'authorities' ? Math.max(...ends) : (ends[0] ?? NaN);
  const days = Math.floor((end - wallNow) / DAY_MS);
  const whom = kind !== 'authorities' || ends.length === 1 ? 'certificate' : `${ends.length} certificates, the last`;
  if (!Number.isFinite(days)) return { outcome: 'ok', detail: shown };
  const detail = `${shown}, ${whom} ${days < 0 ? 'expired' : `valid for ${countDays(days)}`} (${new Date(end).toISOString().slice(0, 10)})`;
  const advice = kind === 'authorities' ? 'get the current ones of that authority' : 'have the certificate renewed';
  if (days < 0) return { outcome: 'fail', detail, advice };
  return days < SOON_DAYS ? { outcome: 'warn', detail, advice } : { outcome: 'ok', detail };
}
