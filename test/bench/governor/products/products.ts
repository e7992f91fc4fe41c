/** The products of the benchmark: limits of services and of gateways, each with the source of its algorithm and figures (pure). */
import type { LimiterRule } from '../limiters.ts';
import type { Spread } from '../world.ts';
import { GATEWAY_PRODUCTS } from './gateway-products.ts';
import { SERVICE_PRODUCTS } from './service-products.ts';

/** Where the algorithm and the figures are stated. */
export interface Source {
  readonly title: string;
  /** An address, or a repository with a path. */
  readonly where: string;
}

export interface Product {
  /** Unique. Rates per second (`/s`), burst (`b20`), windows (`100/60s`). */
  readonly name: string;
  readonly limiter: LimiterRule;
  /** In words. */
  readonly algorithm: string;
  readonly source: Source | 'not found';
  /** What the source does not state. Default: it states everything. */
  readonly assumed?: string;
  /** Time at the server. Default 30 to 40 ms. */
  readonly serviceMs?: Spread;
}

export const PRODUCTS: readonly Product[] = [...SERVICE_PRODUCTS, ...GATEWAY_PRODUCTS];
