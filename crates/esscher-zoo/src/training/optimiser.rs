//! AdamW with a warm-up, a cosine and a bound on the gradient's norm (key `loshchilov2019`).

use super::model::Weight;
use esscher_core::numerics::linalg::dot_in_lanes;

/// How long and how fast to train.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Schedule {
    /// Steps in all.
    pub steps: usize,
    /// Sequences per step.
    pub batch: usize,
    /// Training examples, which are read over and over; none: every step reads new ones.
    pub examples: Option<u32>,
    /// The largest learning rate.
    pub learning_rate: f64,
    /// Steps over which the learning rate rises from zero to the largest; afterwards it falls to zero as a cosine.
    pub warm_up: usize,
    /// Decoupled weight decay.
    pub weight_decay: f64,
    /// The largest norm of the gradient of all weights together; longer gradients are shortened to it.
    pub clip: f64,
    /// Decays of the two averages.
    pub averages: (f64, f64),
}

impl Default for Schedule {
    fn default() -> Self {
        Schedule {
            steps: 1000,
            batch: 64,
            examples: None,
            learning_rate: 3e-3,
            warm_up: 50,
            weight_decay: 0.1,
            clip: 1.0,
            averages: (0.9, 0.98),
        }
    }
}

impl Schedule {
    /// The learning rate of a step, counted from zero.
    pub fn learning_rate_at(&self, step: usize) -> f64 {
        if step < self.warm_up {
            return self.learning_rate * (step + 1) as f64 / self.warm_up as f64;
        }
        let along = (step - self.warm_up) as f64 / (self.steps.saturating_sub(self.warm_up)).max(1) as f64;
        0.5 * self.learning_rate * (1.0 + (std::f64::consts::PI * along.min(1.0)).cos())
    }
}

/// The averages of AdamW.
#[derive(Debug, Clone, Default)]
pub(super) struct AdamW {
    steps: i32,
    means: Vec<Vec<f32>>,
    squares: Vec<Vec<f32>>,
}

/// ε.
const SMALLEST: f32 = 1e-8;

impl AdamW {
    /// Moves the weights by one step; returns the norm of the gradient.
    pub(super) fn step(
        &mut self,
        schedule: &Schedule,
        step: usize,
        weights: &mut [Weight],
        gradients: &[Vec<f32>],
    ) -> f64 {
        if self.means.is_empty() {
            self.means = gradients.iter().map(|gradient| vec![0.0; gradient.len()]).collect();
            self.squares = self.means.clone();
        }
        self.steps += 1;
        let norm =
            gradients.iter().map(|gradient| f64::from(dot_in_lanes(gradient, gradient))).sum::<f64>().sqrt();
        let shortened = (schedule.clip / norm).min(1.0) as f32;
        let rate = schedule.learning_rate_at(step);
        let (first, second) = schedule.averages;
        let (kept, kept_square) = (first as f32, second as f32);
        let correction = 1.0 / (1.0 - first.powi(self.steps));
        let root_correction = (1.0 / (1.0 - second.powi(self.steps))).sqrt() as f32;
        let stride = (rate * correction) as f32;
        for (((weight, gradient), means), squares) in
            weights.iter_mut().zip(gradients).zip(&mut self.means).zip(&mut self.squares)
        {
            if !weight.trained {
                continue;
            }
            let shrunk = if weight.decays { (1.0 - rate * schedule.weight_decay) as f32 } else { 1.0 };
            for (((x, slope), mean), square) in
                weight.numbers.iter_mut().zip(gradient).zip(means).zip(squares)
            {
                let slope = slope * shortened;
                *mean = kept * *mean + (1.0 - kept) * slope;
                *square = kept_square * *square + (1.0 - kept_square) * slope * slope;
                *x = *x * shrunk - stride * *mean / (square.sqrt() * root_correction + SMALLEST);
            }
        }
        norm
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn learning_rates_rise_and_fall() {
        let schedule = Schedule { steps: 110, warm_up: 10, learning_rate: 1.0, ..Schedule::default() };
        assert_eq!(schedule.learning_rate_at(0), 0.1);
        assert_eq!(schedule.learning_rate_at(9), 1.0);
        assert!((schedule.learning_rate_at(60) - 0.5).abs() < 1e-12);
        assert!(schedule.learning_rate_at(109) < 1e-3);
    }

    /// One step of AdamW by hand: the mean over the root of the square is the sign of the slope.
    #[test]
    fn the_first_step_goes_against_the_sign() {
        let mut weights = vec![Weight {
            name: "x".to_string(),
            shape: vec![2],
            numbers: vec![1.0, 2.0],
            trained: true,
            decays: true,
        }];
        let schedule = Schedule {
            steps: 2,
            warm_up: 1,
            learning_rate: 0.1,
            weight_decay: 0.5,
            clip: 100.0,
            ..Schedule::default()
        };
        let norm = AdamW::default().step(&schedule, 0, &mut weights, &[vec![3.0, -4.0]]);
        assert!((norm - 5.0).abs() < 1e-6);
        assert!((weights[0].numbers[0] - (0.95 - 0.1)).abs() < 1e-6);
        assert!((weights[0].numbers[1] - (1.9 + 0.1)).abs() < 1e-6);
    }
}
