/** The list of the sidecar's own metrics, read from what a sidecar with a fleet shows before its first request. */
import { createMetrics } from '../../src/telemetry/metrics/metrics.ts';

/** One metric as its exposition has it. */
interface MetricDescription {
  readonly name: string;
  readonly type: string;
  readonly help: string;
  readonly labels: readonly string[];
}

const PREFIX = 'bearer_sidecar_';
/** Of histograms, and no label of ours. */
const BUCKET_LABEL = 'le';

/** In Markdown, in the order of the exposition; the labels stand in braces behind the name. */
export async function renderMetricsTable(): Promise<string> {
  const rows = describeMetrics(await renderExample()).map(
    ({ name, type, help, labels }) =>
      `- \`${name}${labels.length === 0 ? '' : `{${labels.join(',')}}`}\` (${type}): ${help}`,
  );
  return [...rows, ''].join('\n');
}

/** The labels of each of the sidecar's own metrics, without `le`. @throws Error for a name that no metric has */
export async function readMetricLabels(): Promise<(metric: string) => readonly string[]> {
  const labels = new Map(describeMetrics(await renderExample()).map((metric) => [metric.name, metric.labels]));
  return (name) => {
    const found = labels.get(name);
    if (found === undefined) throw new Error(`there is no metric ${name}`);
    return found;
  };
}

/** The sidecar's own metrics in an exposition. */
export function describeMetrics(exposition: string): MetricDescription[] {
  const helps = new Map([...exposition.matchAll(/^# HELP (\S+) (.*)$/gm)].map(([, name, help]) => [name, help]));
  return [...exposition.matchAll(/^# TYPE (\S+) (\S+)$/gm)]
    .map(([, name = '', type = '']) => ({
      name,
      type,
      help: helps.get(name) ?? '',
      labels: labelsOf(exposition, name),
    }))
    .filter(({ name }) => name.startsWith(PREFIX));
}

function labelsOf(exposition: string, name: string): string[] {
  const sample = new RegExp(`^${name}(?:_bucket|_count|_sum)?\\{(.*)\\} `, 'm').exec(exposition)?.[1] ?? '';
  const labels = [...sample.matchAll(/(\w+)="(?:[^"\\]|\\.)*"/g)].map(([, label = '']) => label);
  return labels.filter((label) => label !== BUCKET_LABEL);
}

/** A state in which no gauge is absent. */
async function renderExample(): Promise<string> {
  const throttle = {
    route: 'default',
    rate: 10,
    pausedMs: 0,
    queued: 0,
    queueMax: 1000,
    inFlight: 0,
    inFlightLimit: 4,
  };
  const limit = { name: 'day', calls: 100, used: 0, usedUpAt: 0 };
  const token = { credential: 'default', expiresWallAt: 0, consecutiveFailures: 0, missingScopes: [] };
  const metrics = createMetrics({
    routes: ['default'],
    credentials: ['default'],
    readStates: () => ({
      version: '0.0.0',
      tokens: [token],
      throttles: [{ ...throttle, learned: { limit: 100, windowMs: 10_000, confidence: 'high' }, limits: [limit] }],
      fleet: { connected: true, degraded: false, quotas: [{ route: 'default', replicas: 2 }] },
    }),
    hasFleet: true,
  });
  return await metrics.render();
}
