/** A real Prometheus with the rules of deploy/prometheus: the alerts that it has for a sidecar, to be compared with those of /status. */
import { join } from 'node:path';
import { OUTSIDE_ALERTS } from '../../tools/dashboard/outside-alerts.ts';
import { startPrometheus } from './prometheus.ts';
import type { Prometheus } from './prometheus.ts';

export const ALERT_FILE = join(import.meta.dirname, '..', '..', 'deploy', 'prometheus', 'alerts.yaml');
export const RECORDING_FILE = join(import.meta.dirname, '..', '..', 'deploy', 'prometheus', 'recording.yaml');

export interface AlertReader {
  readonly prometheus: Prometheus;
  /** Names of the alerts whose conditions hold, pending or firing, without those on what a sidecar cannot see of itself; sorted. */
  readAlerts(adminUrl: string): Promise<string[]>;
}

/** Starts it; it ends with the test. It scrapes and evaluates once a second. @param adminUrls of the sidecars */
export async function startAlertReader(adminUrls: readonly string[]): Promise<AlertReader> {
  const prometheus = await startPrometheus({ targets: adminUrls, rules: [RECORDING_FILE, ALERT_FILE] });
  return {
    prometheus,
    async readAlerts(adminUrl) {
      const series = await prometheus.query(`ALERTS{instance="${new URL(adminUrl).host}"}`);
      const names = series.map(({ metric }) => metric.alertname ?? '').filter((name) => !(name in OUTSIDE_ALERTS));
      return [...new Set(names)].sort();
    },
  };
}
