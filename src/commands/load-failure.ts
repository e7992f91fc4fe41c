/** The text for a configuration that cannot be used: a line per problem, or for a first start without any settings where to begin. */
import { hasConfigFile, type LoadOptions } from '../config/load/load.ts';
import { formatProblems, type ConfigProblem } from '../config/load/problems.ts';
import { SETTINGS } from '../config/schema/schema.ts';

const FIRST_STEPS = [
  'no settings; to try it in front of a simulated partner: bearer-sidecar sandbox',
  'to write a configuration file for your partner: bearer-sidecar init',
  'or set the required variables: SIDECAR_BASE_URL, SIDECAR_AUTH_URL, SIDECAR_CLIENT_ID, SIDECAR_CLIENT_SECRET (or SIDECAR_CLIENT_SECRET_FILE); SIDECAR_AUDIENCE and SIDECAR_SCOPE if the partner wants them',
];

export function describeLoadFailure(load: LoadOptions, problems: readonly ConfigProblem[]): string {
  const variables = [...SETTINGS].filter(([key]) => isOfPartner(key)).map(([, { env }]) => env);
  const isFirstStart =
    !hasConfigFile(load) &&
    (load.flags ?? []).every(({ key }) => !isOfPartner(key)) &&
    variables.every((name) => (load.env[name] ?? '') === '');
  if (!isFirstStart || !problems.some(({ key }) => key === 'upstream.baseUrl')) return formatProblems(problems);
  const others = problems.filter(({ key }) => !isOfPartner(key));
  return FIRST_STEPS.map((line) => `bearer-sidecar: ${line}\n`).join('') + formatProblems(others);
}

function isOfPartner(key: string): boolean {
  return key === 'upstream.baseUrl' || key.startsWith('auth.');
}
