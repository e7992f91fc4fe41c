/** The usual chain of an end-to-end test: a token server, a recording upstream, and a sidecar that is ready between them. */
import { startRecordingUpstream } from './recording-upstream.ts';
import type { RespondTo, RecordingUpstream } from './recording-upstream.ts';
import { newCredential } from './secrets.ts';
import { baseSettings, startSidecar, waitUntilReady } from './sidecar-process.ts';
import type { Environment, RunningSidecar } from './sidecar-process.ts';
import { startTokenServer } from './token-server.ts';
import type { TokenServer, TokenServerOptions } from './token-server.ts';

export interface SidecarStackOptions {
  /** Names the sidecar's log. */
  readonly name: string;
  /** Default: echo. */
  readonly respond?: RespondTo;
  readonly token?: TokenServerOptions;
  readonly env?: Environment;
  /** Wait for the first token. Default true. */
  readonly waitsForToken?: boolean;
}

export interface SidecarStack extends AsyncDisposable {
  readonly sidecar: RunningSidecar;
  readonly upstream: RecordingUpstream;
  readonly tokens: TokenServer;
}

export async function startSidecarStack(options: SidecarStackOptions): Promise<SidecarStack> {
  await using cleanup = new AsyncDisposableStack();
  const tokens = cleanup.use(await startTokenServer(options.token));
  const upstream = cleanup.use(await startRecordingUpstream(options.respond));
  const env = { ...baseSettings(upstream.url, tokens.url, newCredential()), ...options.env };
  const sidecar = cleanup.use(await startSidecar({ name: options.name, env }));
  if (options.waitsForToken ?? true) await waitUntilReady(sidecar);
  const all = cleanup.move();
  return { sidecar, upstream, tokens, [Symbol.asyncDispose]: () => all.disposeAsync() };
}
