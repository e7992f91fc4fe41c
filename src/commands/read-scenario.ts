/** Reads the file of `sandbox --scenario`: what the simulated partner does otherwise than by default. */
import { isForwardedMethod, plainPath } from '../config/schema/formats/allow-rules.ts';
import { booleanValue, format, fraction, list, matching, oneOf } from '../config/schema/formats/formats.ts';
import { wholeNumber, type Format, type SettingValue } from '../config/schema/formats/formats.ts';
import { findValueFault, type ConfigProblem } from '../config/load/problems.ts';
import { readSections } from '../config/load/sections.ts';
import { readYamlFile } from '../config/load/sources.ts';
import { DEFAULT_SCENARIO, KNOWN_SCOPES, type SandboxScenario } from '../sandbox/scenario.ts';

const milliseconds = wholeNumber(0, 600_000);
const errorStatus = wholeNumber(400, 599);
const sections = format<readonly never[]>({ expected: 'a list of sections', check: Array.isArray, schema: {} });

const SCENARIO = {
  seed: wholeNumber(0, Number.MAX_SAFE_INTEGER),
  latencyMs: milliseconds,
  jitterMs: milliseconds,
  limits: sections,
  faults: sections,
  role: oneOf(['seller', 'reader']),
  scopes: list(`one of ${KNOWN_SCOPES.join(', ')}`, 0, (name) => KNOWN_SCOPES.includes(name)),
  scopeField: oneOf(['granted', 'empty', 'absent']),
  tokenType: oneOf(['Bearer', 'bearer', 'BEARER']),
};
const LIMIT = {
  calls: wholeNumber(1, 1_000_000),
  per: matching(/^(?:[1-9][0-9]{0,4}[smhd]|1mo)$/, 'a whole number and s, m, h or d, such as 10s, or 1mo'),
  window: oneOf(['sliding', 'fixed', 'calendar', 'bucket', 'inFlight']),
  'match.methods': list('methods in capitals', 1, isForwardedMethod),
  'match.path': plainPath,
  status: errorStatus,
  retryAfter: oneOf(['seconds', 'date', 'none']),
  fields: booleanValue,
};
const FAULT = { share: fraction, status: errorStatus, breaks: oneOf(['reset', 'cut']) };

type Table = Readonly<Record<string, Format<SettingValue>>>;
type Values<T extends Table> = { readonly [K in keyof T]?: T[K] extends Format<infer V> ? V : never };

/** @param problems gets one for each wrong key; the scenario is of no use then */
export function readScenario(path: string, problems: ConfigProblem[]): SandboxScenario {
  const refuse = (key: string, message: string): void => void problems.push({ key, message });
  const file = readYamlFile(path, 'latencyMs');
  const [tree, fault] = typeof file === 'string' ? [new Map<unknown, unknown>(), file] : [file, 'is empty'];
  if (tree.size === 0) refuse('--scenario', `${JSON.stringify(path)}: ${fault}`);
  const { limits, faults = [], ...given } = readValues(tree, '', SCENARIO, problems);
  let total = 0;
  return {
    ...DEFAULT_SCENARIO,
    ...given,
    limits:
      limits?.map((entry, index) => {
        const key = `limits[${String(index)}]`;
        const values = readValues(entry, key, LIMIT, problems);
        if (!('calls' in values) || 'per' in values === (values.window === 'inFlight'))
          refuse(key, 'expected calls and per, or calls and window: inFlight without per');
        const { calls = 0, 'match.methods': methods, 'match.path': prefix, ...limit } = values;
        return { ...limit, calls, match: { methods, path: prefix } };
      }) ?? DEFAULT_SCENARIO.limits,
    faults: faults.map((entry, index) => {
      const key = `faults[${String(index)}]`;
      const { share = 0, ...fault } = readValues(entry, key, FAULT, problems);
      if ('status' in fault === 'breaks' in fault) refuse(key, 'expected share, and status or breaks');
      total += share;
      if (total > 1) refuse(key, 'the shares are more than 1 together');
      return { ...fault, share };
    }),
  };
}

/** @param key of the section; empty: the whole file */
function readValues<T extends Table>(tree: unknown, key: string, table: T, problems: ConfigProblem[]): Values<T> {
  const prefix = key === '' ? '' : `${key}.`;
  const section = tree instanceof Map ? tree : new Map();
  const given = readSections(section, { path: 'the scenario', prefix, keys: Object.keys(table) });
  problems.push(...given.problems);
  const found = Object.entries(table).filter(([name]) => given.values.has(name));
  const values = found.map(([name, valueFormat]) => {
    const value = valueFormat.fromFile(given.values.get(name));
    const fault = findValueFault({ format: valueFormat, sensitive: false }, { value, origin: '' });
    if (fault !== undefined) problems.push({ key: prefix + name, message: fault });
    return [name, fault === undefined ? value : undefined];
  });
  return Object.fromEntries(values) as Values<T>;
}
