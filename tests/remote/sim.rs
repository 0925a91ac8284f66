//! Simulated ground: a store on a simulated disk that replicates to a simulated remote store.

mod collection;
mod cuts;
mod damage;
mod fencing;
mod lost_replies;
mod python_reader;
mod restoring;
mod schedules;
mod shipping;
mod tiering;
mod worlds;
