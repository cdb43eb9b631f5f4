import { connect } from './sidekeep/index.js';
import { relay } from './sidekeep/relay.js';

globalThis.keep = connect();
globalThis.relayed = relay(keep);
