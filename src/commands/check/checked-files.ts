/** Checks the files that settings name: contents and the expiry of certificates. Loading has refused unusable files already. */
import { X509Certificate } from 'node:crypto';
import { stat } from 'node:fs/promises';
import type { ConfigEntry } from '../../config/load/entries.ts';
import type { LoadedConfig } from '../../config/load/load.ts';
import { splitPemCertificates } from '../../config/load/named-files.ts';
import { describeEnds, formatSettingName } from '../../config/load/problems.ts';
import { LARGEST_PEM_BYTES, readTextFile } from '../../token/client/secret-file.ts';
import { formatDays, DAY_MS, EXPIRY_WARNING_DAYS } from './evaluate/evaluate-tls.ts';
import { createSettingNamer, type NameSetting } from './step-runner.ts';
import { isJsonObject } from '../../token/endpoint/json-object.ts';
import { StepRunner, type CheckStep, type CheckContext, type CheckFinding } from './step-runner.ts';

interface CheckedFile {
  readonly setting: string;
  readonly path: string;
  /** `certificate`: our own, the leaf first. `authorities`: trusted certificates. */
  readonly kind: 'secret' | 'key' | 'certificate' | 'authorities';
}

/** By the ends of the names of settings. Files that the sidecar writes, and tokens, which steps of their own read, are not among them. */
const KINDS: readonly (readonly [suffix: RegExp, kind: CheckedFile['kind']])[] = [
  [/\.caFile$/, 'authorities'],
  [/\.(?:tlsC|c)ertificateFile$/, 'certificate'],
  [/\.(?:private|tls)KeyFile$/, 'key'],
  [/\.(?:clientId|clientSecret|redisUrl|value)File$/, 'secret'],
];

type CheckedSettings = Pick<LoadedConfig, 'top' | 'entries'>;

export async function checkFiles(settings: CheckedSettings, context: CheckContext): Promise<readonly CheckStep[]> {
  const groups = await Promise.all(
    listFiles(settings).map(async (file) => {
      const runner = new StepRunner(file.setting.replace(/ \(.*$/, ''), context);
      await runner.run('file', () => inspectFile(file, context.clock.wallNow()));
      return runner.steps;
    }),
  );
  return groups.flat();
}

/** A file of several settings is checked once. */
function listFiles({ top, entries }: CheckedSettings): readonly CheckedFile[] {
  const named = [...listEntryFiles(top, formatSettingName)];
  for (const entry of entries.credentials)
    named.push(...listEntryFiles(entry, createSettingNamer('credential', entry.own.name ?? '')));
  for (const entry of entries.routes)
    named.push(...listEntryFiles(entry, createSettingNamer('route', entry.own.name ?? '')));
  return [...new Map(named.toReversed().map((file) => [file.path, file])).values()].toReversed();
}

function listEntryFiles({ values }: ConfigEntry, nameSetting: NameSetting): readonly CheckedFile[] {
  return [...values].flatMap(([key, { value }]): CheckedFile[] => {
    const [setting, found] = [nameSetting(key), KINDS.find(([suffix]) => suffix.test(key))];
    if (found !== undefined && typeof value === 'string') return [{ setting, path: value, kind: found[1] }];
    if (!isJsonObject(value)) return [];
    return Object.values(value).flatMap((field) =>
      isJsonObject(field) && typeof field.file === 'string' ? [{ setting, path: field.file, kind: 'secret' }] : [],
    );
  });
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
