/** What is asked of every proxy. */

export interface Scenario {
  readonly name: string;
  readonly title: string;
  readonly path: '/item' | '/post' | '/download';
  readonly connections: number;
  /** Length of the body that is posted; 0 is a GET. */
  readonly bodyBytes: number;
  /** Whether the upstream speaks TLS. */
  readonly isTls: boolean;
}

const GET = { path: '/item', bodyBytes: 0, isTls: false } as const;
const POST = { path: '/post', bodyBytes: 512, isTls: false } as const;
const UPLOAD = { path: '/post', bodyBytes: 64 * 1024, isTls: false } as const;
const DOWNLOAD = { path: '/download', bodyBytes: 0, isTls: false } as const;

export const SCENARIOS: readonly Scenario[] = [
  { ...GET, name: 'get1', title: 'GET, 1 connection', connections: 1 },
  { ...GET, name: 'get64', title: 'GET, 64 connections', connections: 64 },
  { ...GET, name: 'get1000', title: 'GET, 1000 connections', connections: 1000 },
  { ...POST, name: 'post1', title: 'POST 0.5 kB, 1 connection', connections: 1 },
  { ...POST, name: 'post64', title: 'POST 0.5 kB, 64 connections', connections: 64 },
  { ...POST, name: 'post1000', title: 'POST 0.5 kB, 1000 connections', connections: 1000 },
  { ...UPLOAD, name: 'upload64', title: 'POST 64 kB, 64 connections', connections: 64 },
  { ...DOWNLOAD, name: 'download64', title: 'download 1 MB, 64 connections', connections: 64 },
  { ...GET, name: 'tlsget64', title: 'GET, 64 connections, TLS upstream', connections: 64, isTls: true },
  { ...POST, name: 'tlspost64', title: 'POST 0.5 kB, 64 connections, TLS upstream', connections: 64, isTls: true },
];
