/** What a normal request costs beside a crowd of idle and dripping connections, and what the crowd costs in memory. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Agent } from 'undici';
import { startSidecarStack } from '../support/chain.ts';
import { processMemory } from '../support/process-memory.ts';
import type { RunningSidecar } from '../support/sidecar-process.ts';
import { callVerified } from '../support/witness-client.ts';
import { startVerifyingUpstream } from '../support/witness-upstream.ts';

export interface ConnectionLoad {
  readonly idle: number;
  readonly slow: number;
  /** Requests measured, without and with the crowd. */
  readonly requests: number;
}

export interface Latency {
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly maxMs: number;
  /** Without a 200, or with other bytes than were sent. */
  readonly failed: number;
}

export interface ConnectionLoadResult {
  readonly alone: Latency;
  readonly beside: Latency;
  /** Connections that the sidecar holds while the crowd is there. */
  readonly connections: number;
  readonly aloneRssBytes: number;
  readonly besideRssBytes: number;
}

/** Of each body. */
const BODY_BYTES = 500;

/** Each on a connection of its own or a kept one by turns, one after the other. */
export async function measureConnectionLoad({ idle, slow, requests }: ConnectionLoad): Promise<ConnectionLoadResult> {
  await using upstream = await startVerifyingUpstream();
  const env = {
    SIDECAR_BASE_URL: upstream.url,
    SIDECAR_RATE: '100000',
    SIDECAR_BURST: '100000',
    SIDECAR_LISTEN_MAX_CONNECTIONS: '16000',
  };
  await using chain = await startSidecarStack({ name: 'soak-crowd', env });
  const { sidecar } = chain;
  await measureLatency(sidecar, requests);
  const alone = await measureLatency(sidecar, requests);
  const aloneRssBytes = processMemory(sidecar.pid, 'VmRSS');
  const args = [join(import.meta.dirname, 'crowd.child.ts'), sidecar.proxyUrl, String(idle), String(slow)];
  const crowd = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'inherit'] });
  const ended = once(crowd, 'exit');
  await Promise.race([once(crowd.stdout, 'data'), ended]);
  const connections = countConnections(sidecar);
  const beside = await measureLatency(sidecar, requests);
  const besideRssBytes = processMemory(sidecar.pid, 'VmRSS');
  crowd.stdin.end();
  await ended;
  if (upstream.stats.altered.length > 0) throw new Error(upstream.stats.altered.join('; '));
  return { alone, beside, connections, aloneRssBytes, besideRssBytes };
}

async function measureLatency({ proxyUrl }: RunningSidecar, count: number): Promise<Latency> {
  const kept = new Agent({ pipelining: 1 });
  const fresh = new Agent({ pipelining: 0 });
  const times: number[] = [];
  let failed = 0;
  for (let index = 0; index < count; index++) {
    const startedAt = performance.now();
    const call = {
      id: `crowd-${String(index)}`,
      requestBytes: index % 4 < 2 ? 0 : BODY_BYTES,
      responseBytes: BODY_BYTES,
    };
    const { status, alteration } = await callVerified(index % 2 === 0 ? kept : fresh, `${proxyUrl}/a`, call);
    times.push(performance.now() - startedAt);
    if (status !== 200 || alteration !== undefined) failed++;
  }
  await Promise.all([kept.close(), fresh.close()]);
  times.sort((a, b) => a - b);
  const at = (share: number): number => times[Math.min(times.length - 1, Math.floor(times.length * share))] ?? 0;
  return { p50Ms: at(0.5), p99Ms: at(0.99), maxMs: at(1), failed };
}

/** Established ones of the proxy port, by the kernel's own count. Linux only. */
function countConnections({ proxyUrl }: RunningSidecar): number {
  const port = Number(new URL(proxyUrl).port).toString(16).toUpperCase().padStart(4, '0');
  const lines = readFileSync('/proc/net/tcp', 'utf8').split('\n');
  return lines.filter((line) => / [0-9A-F]{8}:([0-9A-F]{4}) \S+ 01 /.exec(line)?.[1] === port).length;
}
