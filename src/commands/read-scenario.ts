/** Reads the file of `sandbox --scenario`: what the simulated partner does otherwise than by default. */
import { isForwardedMethod, plainPath } from '../config/schema/formats/allow-rules.ts';
import { format, fraction, list, matching, oneOf, permitsPerSecond } from '../config/schema/formats/formats.ts';
import { wholeNumber, type Format, type SettingValue } from '../config/schema/formats/formats.ts';
import { findValueFault, type ConfigProblem } from '../config/load/problems.ts';
import { readSections } from '../config/load/sections.ts';
import { readYamlFile } from '../config/load/sources.ts';
import { DEFAULT_SCENARIO, KNOWN_SCOPES, type SandboxScenario } from '../sandbox/scenario.ts';

const count = wholeNumber(1, 1_000_000);
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
  calls: count,
  per: matching(/^(?:[1-9][0-9]{0,4}[smhd]|1mo)$/, 'a whole number and s, m, h or d, such as 10s, or 1mo'),
  window: oneOf(['sliding', 'fixed', 'calendar']),
  rate: permitsPerSecond,
  burst: count,
  inFlight: count,
  fields: oneOf(['none', 'ratelimit', 'x-ratelimit']),
  status: errorStatus,
  retryAfter: oneOf(['seconds', 'date', 'none']),
  'match.methods': list('methods in capitals', 1, isForwardedMethod),
  'match.path': plainPath,
};
const FAULT = { share: fraction, status: errorStatus, breaks: oneOf(['reset', 'cut']) };

/** Which keys go together, in the order of their tables. */
const LIMIT_KEYS =
  /^(?:(?:calls per(?: window)?|rate(?: burst)?)(?: fields)?|inFlight)(?: status| retryAfter| match\.\w+)*$/;
const LIMIT_RULE = 'calls and per, with or without window; or rate, with or without burst; or inFlight, without fields';
const FAULT_KEYS = /^share (?:status|breaks)$/;
const FAULT_RULE = 'share, and status or breaks';

type Table = Readonly<Record<string, Format<SettingValue>>>;
type Values<T extends Table> = { readonly [K in keyof T]?: T[K] extends Format<infer V> ? V : never };

/** @param problems gets one for each wrong key; the scenario is of no use then */
export function readScenario(path: string, problems: ConfigProblem[]): SandboxScenario {
  const file = readYamlFile(path, 'latencyMs');
  const [tree, fault] = typeof file === 'string' ? [new Map<unknown, unknown>(), file] : [file, 'is empty'];
  if (tree.size === 0) problems.push({ key: '--scenario', message: `${JSON.stringify(path)}: ${fault}` });
  const { limits, faults = [], ...given } = readValues(tree, '', SCENARIO, problems);
  const scenario = {
    ...DEFAULT_SCENARIO,
    ...given,
    limits:
      limits?.map((entry, index) => {
        const values = readValues(entry, `limits[${String(index)}]`, LIMIT, problems, LIMIT_KEYS, LIMIT_RULE);
        const { 'match.methods': methods, 'match.path': prefix, ...limit } = values;
        return { ...limit, match: { methods, path: prefix } };
      }) ?? DEFAULT_SCENARIO.limits,
    faults: faults.map((entry, index) => {
      const key = `faults[${String(index)}]`;
      return { share: 0, ...readValues(entry, key, FAULT, problems, FAULT_KEYS, FAULT_RULE) };
    }),
  };
  const total = scenario.faults.reduce((sum, { share }) => sum + share, 0);
  if (problems.length === 0 && total > 1)
    problems.push({ key: 'faults', message: `the shares are ${String(total)} together; expected at most 1` });
  return scenario;
}

function readValues<T extends Table>(
  tree: unknown,
  key: string,
  table: T,
  problems: ConfigProblem[],
  keys = /^/,
  expected = '',
): Values<T> {
  if (!(tree instanceof Map)) {
    problems.push({ key, message: `expected a section with ${Object.keys(table).join(', ')}` });
    return {};
  }
  const prefix = key === '' ? '' : `${key}.`;
  const given = readSections(tree, { path: 'the scenario', prefix, keys: Object.keys(table) });
  problems.push(...given.problems);
  const found = Object.entries(table).filter(([name]) => given.values.has(name));
  const names = found.map(([name]) => name);
  if (!keys.test(names.join(' ')))
    problems.push({ key, message: `found ${names.join(', ') || 'no key'}; expected ${expected}` });
  const values = found.map(([name, valueFormat]) => {
    const value = valueFormat.fromFile(given.values.get(name));
    const fault = findValueFault({ format: valueFormat, sensitive: false }, { value, origin: '' });
    if (fault !== undefined) problems.push({ key: prefix + name, message: fault });
    return [name, fault === undefined ? value : undefined];
  });
  return Object.fromEntries(values) as Values<T>;
}
